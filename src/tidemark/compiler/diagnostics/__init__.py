"""What is wrong with a definition, said in the user's words and with its place in the text."""
