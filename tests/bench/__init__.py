"""What tests are written with: a fake model endpoint and its like. No tests in here."""
