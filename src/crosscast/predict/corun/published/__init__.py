"""The predictors of paper 004 (Moolchandani, Kumar and Sarangi 2022) as published."""
