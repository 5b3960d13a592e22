"""Files in and out: data sets (`data`), models (`models`) and texts (`text`)."""

__all__ = []
