"""Arrays that the inspector stores: the results of searches, and the arrays that hold them."""
