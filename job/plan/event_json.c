/* One event, appended. */
#include "job/plan/event_json.h"

#include "base/timestamp.h"

const json_t *event_json_add(json_t *list, size_t max, uint64_t realtime_usec, const char *reason,
                             const char *message)
{
        char when[TIMESTAMP_BYTES];

        while (json_array_size(list) >= max && json_array_remove(list, 0) == 0)
                continue;
        if (json_array_append_new(list,
                                  json_pack("{s:s, s:s, s:s}", "time", timestamp_format(realtime_usec, when),
                                            "reason", reason, "message", message)) < 0)
                return NULL;
        return json_array_get(list, json_array_size(list) - 1);
}
