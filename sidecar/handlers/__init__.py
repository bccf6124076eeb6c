"""One file a method of the contract; `table` binds them."""
