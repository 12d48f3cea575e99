"""Results for people: tables, figures and pages, a module for each question."""
