"""Pictures of traces, noise and what an attacker believes."""
