"""The paper: every page is made from one frame of words and numbers."""
