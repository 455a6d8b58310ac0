"""What is printed: every page is made from one frame of words and numbers."""
