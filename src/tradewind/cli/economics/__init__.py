"""Commands about a whole team: buy, commit or rent, where, when, and what it emits."""
