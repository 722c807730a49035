"""The vocabulary of tack: records that check themselves and do nothing else.

Everybody imports this package; it imports nobody.
"""
