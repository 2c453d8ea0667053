"""Models that published figures are about, built without downloads, and the figures of tests/data/profile_cases.csv."""
