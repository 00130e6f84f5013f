"""What a backend takes each token id for, held against the vocabulary's own bytes.

`compare` names the difference of each id that a library reads wrongly, `probe` shows it by a mask, and `look`
does both for an adapter in a process of its own.
"""
