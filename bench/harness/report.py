"""What people see."""


def seconds(value):
    if value is None:
        return "-"
    if value < 1:
        return f"{value * 1000:.3g} ms"
    return f"{value:.3g} s"


def print_heading():
    print("Time of Starfold; its ratio to the limit (below 1 is better than the limit); how many times slower peers are.\n")
    print(f"{'row':18} {'starfold':>9} {'limit':>9} {'ratio':>6}  peers")


def print_result(row, result):
    starfold, limit = result["starfold_s"], result["limit_s"]
    ratio = f"{starfold / limit:.2f}" if starfold and limit else "-"
    peers = "  ".join(f"{name} {value / starfold:.3g}x" for name, value in result["peers"].items() if starfold)
    print(f"{row.name:18} {seconds(starfold):>9} {seconds(limit):>9} {ratio:>6}  {peers}")
    words = {True: "met", False: "MISSED", None: "not measured"}
    print("    " + "; ".join(f"{goal['goal']}: {words[goal['met']]}" for goal in result["goals"]))
    if "by_turn" in result:
        low, middle, high = result["by_turn"]
        print(f"    turn by turn {middle:.2f} of the limit, half of the turns between {low:.2f} and {high:.2f}")
    if "share_of_peak" in result:
        print(f"    {result['share_of_peak']:.0%} of the multiply-add peak, {result['peak_gigaflops']:.0f} gigaflops")
    if "starfold_megabytes" in result:
        print(f"    peak memory of Starfold: {result['starfold_megabytes']:.0f} MB")
    for name, why in result.get("absent", {}).items():
        print(f"    {name} skipped: {why}")
    for name, note in result.get("notes", {}).items():
        print(f"    {name}: {note}")
    for name, difference in result.get("disagree", {}).items():
        print(f"    WARNING: the results of {name} differ by {difference:.2g}")
    print(end="", flush=True)


def print_list(rows):
    for row in rows:
        print(f"{row.name:18} {row.title.format(**{key: grouped(value) for key, value in row.sizes.items()})}")
        print(f"{'':18} limit: {row.limit_is}; goals: {'; '.join(goal.text() for goal in row.goals)}")


def grouped(value):
    return f"{value:,}" if isinstance(value, int) else value
