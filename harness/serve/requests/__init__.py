"""What the decode loop and live servers share: when requests arrive, their latencies, and the titles of the
figures."""
