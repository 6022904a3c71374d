"""A small reference model of billing: money in exact fractions, periods by a calendar of its own.

It imports nothing from the package and reads no SQL, so that it can only agree with the engine by
being told the same rules.
"""
