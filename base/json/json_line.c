/* A line is dumped compact, and read with a limit of its length. */
#include "base/json/json_line.h"

#include <errno.h>
#include <stdlib.h>

void json_line_append(struct text *out, json_t *object)
{
        char *line = json_dumps(object, JSON_COMPACT); /* of NULL it is NULL */

        json_decref(object);
        if (line != NULL) {
                text_append(out, line);
                text_append_char(out, '\n');
        }
        free(line);
}

json_t *json_line_load(const char *line, size_t size_bytes, size_t max_bytes, struct err *err)
{
        json_t *object =
                size_bytes <= max_bytes ? json_loadb(line, size_bytes, JSON_REJECT_DUPLICATES, NULL) : NULL;

        if (object == NULL)
                (void) err_set(err, -EBADMSG, "a line that is not JSON");
        return object;
}
