/* Link memory: what vendors' libraries said of direct links between devices, remembered. A device that cannot
 * be asked any more keeps what was said of it; a change is believed when it was said twice, so that a link
 * that trains anew does not draw the groups anew.
 *
 * What is believed is also left in a file, one a vendor (`<directory>/VENDOR`, lines of
 * agent/inventory/link_report_line.h): the next agent begins with it, and the command line on this machine
 * sees the same links. The directory is of this boot (/run). */
#pragma once

#include "agent/inventory/link_report.h"
#include "io/log.h"

struct link_memory;

/* link_memory_new() - @directory: where the files are, read now; "" = none. @log: borrowed. NULL = no memory.
 */
struct link_memory *link_memory_new(const char *directory, struct log *log);
void link_memory_free(struct link_memory *memory); /* accepts NULL */

/* link_memory_take() - one vendor's whole answer. Return: is anything believed now that was not before? */
bool link_memory_take(struct link_memory *memory, const char *vendor, const struct link_report_list *answer);

/* link_memory_believed() - valid until the next take. */
const struct link_report_list *link_memory_believed(const struct link_memory *memory);
