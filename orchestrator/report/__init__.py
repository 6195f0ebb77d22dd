"""What people look at: tables of the best assignments and pictures of a sweep."""
