"""What goes on without anybody looking: news confirmed by a second measurement, nights."""
