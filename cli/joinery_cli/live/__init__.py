"""What is looked at while it changes: views that come one after another, and the screen that shows them."""
