/* Job view: what people are shown of a job (`remuda jobs`, its report), as one object of JSON wherever the
 * job ran. Members may be null or missing. */
#pragma once

#include <jansson.h>

const char *view_text(const json_t *view, const char *name); /* borrowed from the view; "" = there is none */
double view_number(const json_t *view, const char *name);    /* NAN = there is none */
