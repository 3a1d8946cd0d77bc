"""Carries the messages of a Starfold study over Flower. docs/flower.md says how it is set up."""
