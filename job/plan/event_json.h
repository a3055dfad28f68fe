/* Event JSON: what happened to a job, {"time", "reason", "message"}, in a list that keeps the latest. In
 * memory only. */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

/* event_json_add() - append an event; of more than `max` the oldest goes.
 * @realtime_usec: of CLOCK_REALTIME. Return: the event, owned by the list; NULL without memory. */
const json_t *event_json_add(json_t *list, size_t max, uint64_t realtime_usec, const char *reason,
                             const char *message);
