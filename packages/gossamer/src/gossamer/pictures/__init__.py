"""What pictures of matrices show: the elements of each part, and the pixels that they fall into."""
