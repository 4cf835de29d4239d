"""Contents of pictures of matrices: the elements of each part, and the pixels that they fall into."""
