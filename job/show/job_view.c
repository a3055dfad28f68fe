#include "job/show/job_view.h"

#include <math.h>

const char *view_text(const json_t *view, const char *name)
{
        const char *text = json_string_value(json_object_get(view, name));

        return text == NULL ? "" : text;
}

double view_number(const json_t *view, const char *name)
{
        const json_t *value = json_object_get(view, name);

        return json_is_number(value) ? json_number_value(value) : NAN;
}
