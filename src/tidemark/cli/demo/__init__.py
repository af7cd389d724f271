"""The demonstration: an online shop's orders, a job over them, and what came out."""
