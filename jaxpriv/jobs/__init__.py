"""Whole jobs as plain functions: from a trace file to a sanitised one."""
