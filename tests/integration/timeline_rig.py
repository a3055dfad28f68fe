"""What ranks did when: the files that --timeline wrote."""
import json


def read(*paths):
    """Events of Chrome's trace format, one a line; of a rank that was killed the last line may be half."""
    events = []
    for path in paths:
        with open(path) as f:
            for event in (json.loads(line[:-2]) for line in f if line.endswith("},\n")):
                events.append({"rank": event["tid"], "step": event["args"]["step"], "what": event["name"],
                               "begin_usec": event["ts"], "end_usec": event["ts"] + event["dur"]})
    return events
