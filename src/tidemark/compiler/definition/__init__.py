"""The text of a job, read into typed models with the position of everything in it."""
