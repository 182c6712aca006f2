"""What the report says about a release together with the earlier ones in a ledger."""

from __future__ import annotations

from jaxpriv.report.record import LedgerRecord, TogetherRecord
from jaxpriv.report.rounding import given, significant


_LISTED, _WORST = 12, 5  # secrets that are named one by one, and of more the worst


def together_lines(record: LedgerRecord) -> list[str]:
    """Say which release it is, what all of them tell together, and of each secret what it was by one release alone."""
    who = f"This is release number {record.number} about this person in the ledger"
    lines = []
    if record.again:
        lines.append(
            f"Release number {record.number} again; nothing new is published, nothing is spent: the shared files hold "
            "the same published numbers as then."
        )
        who = f"The ledger holds {record.counted} release(s) about this person"
    elif record.counted == 1:
        who += ", the first one"
    else:
        who += f"; {record.counted - 1} earlier one(s) count"
    limit = "no limit was set" if record.limit is None else f"the limit is {given(record.limit)}"
    lines.append(
        f"{who}. All of them together were certified as one observation, never as a sum: ε = "
        f"{significant(record.epsilon, 3, 'up')} at most for any secret on record; {limit}."
    )
    secrets = record.secrets
    if len(secrets) > _LISTED:
        lines.append(f"The {_WORST} of {len(secrets)} secrets on record with the largest ε together:")
        secrets = tuple(sorted(secrets, key=lambda one: -one.together)[:_WORST])
    lines += [_one(one) for one in secrets]
    lines.append("The other sections are about this release by itself, for somebody who sees no other.")
    return lines


def _one(secret: TogetherRecord) -> str:
    label = secret.label[0].upper() + secret.label[1:]
    return (
        f"{label}: ε = {significant(secret.alone, 3, 'up')} by release number {secret.release} alone, "
        f"{significant(secret.together, 3, 'up')} by all of them together."
    )
