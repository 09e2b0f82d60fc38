"""Cards of linear algebra."""
