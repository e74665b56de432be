"""What Tandem offers to Python."""
