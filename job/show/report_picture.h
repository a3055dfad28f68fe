/* Report picture: one picture of a report as an SVG file. Text from jobs is escaped. Pure. */
#pragma once

#include "base/text.h"
#include "job/show/report.h"

/* report_picture() - @name: "timeline", "progress", "loss", "shares" or "placement".
 * Return: 0; -ENOENT: there is nothing to draw, or no such picture. */
int report_picture(const struct report *report, const char *name, struct text *out);
