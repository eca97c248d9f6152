"""Who moved the outcome: the power of each seat at the table, and its worth to the room.

`values` holds the indices of cooperative games; `pivotality`, `manipulation` and `conformance`
look at single decisions; `coalitions` plays whole episodes with seats left empty; `account`
puts it all together.
"""
