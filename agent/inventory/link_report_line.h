/* Link report line: a link report as one line of JSON, the same between probe child and agent and in the
 * file /run/remuda/links/VENDOR of a machine (see docs/reference/inventory.md):
 *
 *      {"pci":"0000:06:00.0","links":[{"peer":"0000:07:00.0","width":2}],"switched":0}
 *
 * Nobody is trusted: a line is decoded field by field and refused when a field is out of bounds. Addresses
 * come out in the kernel's form, lower case. */
#pragma once

#include "agent/inventory/link_report.h"
#include "base/err.h"
#include "base/text.h"

#define LINK_REPORT_LINE_FOLDER "run/remuda/links" /* in a tree; a file a vendor */
#define LINK_REPORT_LINE_BYTES  4096
#define LINK_REPORT_WIDTH_MAX   1000

/* link_report_line_encode() - append one line with its newline. */
void link_report_line_encode(const struct link_report *report, struct text *out);

/* link_report_line_decode() - @vendor: whose line it is. Return: 0, or -EBADMSG (*ret is undefined). */
int link_report_line_decode(const char *vendor, const char *line, size_t size_bytes, struct link_report *ret,
                            struct err *err);

/* link_report_line_decode_all() - a whole file, added to *ret; lines that begin with '#' and empty ones say
 * nothing. Return: 0; -EBADMSG with the line's number, or -ENOMEM, and then *ret is as before. */
int link_report_line_decode_all(const char *vendor, const char *bytes, size_t size_bytes,
                                struct link_report_list *ret, struct err *err);
