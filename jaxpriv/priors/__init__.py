"""What an adversary is assumed to believe about a trace before it is published."""
