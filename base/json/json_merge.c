/* RFC 7386, member by member. */
#include "base/json/json_merge.h"

#include <errno.h>

/* A replaced value must not bring nulls along: inside a patch they mean "remove". */
static int set_merged(json_t *target, const char *name, const json_t *patch)
{
        json_t *old = json_object_get(target, name);

        if (!json_is_object(patch))
                return json_object_set_new(target, name, json_deep_copy(patch)) < 0 ? -ENOMEM : 0;
        if (!json_is_object(old)) {
                old = json_object();
                if (old == NULL || json_object_set_new(target, name, old) < 0)
                        return -ENOMEM;
        }
        return json_merge_patch(old, patch);
}

int json_merge_patch(json_t *target, const json_t *patch)
{
        const char *name;
        json_t *value;
        int r;

        json_object_foreach((json_t *) patch, name, value)
        {
                if (json_is_null(value)) {
                        (void) json_object_del(target, name);
                        continue;
                }
                r = set_merged(target, name, value);
                if (r < 0)
                        return r;
        }
        return 0;
}
