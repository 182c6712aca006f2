"""The design problems as CVXPY programs: exact, slow, and used to cross-check the closed forms, never to answer."""
