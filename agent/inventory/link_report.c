/* Link report: an array that keeps one report a device. */
#include "agent/inventory/link_report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"

void link_report_list_free(struct link_report_list *reports)
{
        if (reports == NULL)
                return;
        free(reports->reports);
        *reports = (struct link_report_list){ 0 };
}

struct link_report *link_report_list_find(const struct link_report_list *reports, const char *vendor,
                                          const char *pci)
{
        for (size_t i = 0; i < reports->count; i++)
                if (strcmp(reports->reports[i].pci, pci) == 0 &&
                    strcmp(reports->reports[i].vendor, vendor) == 0)
                        return &reports->reports[i];
        return NULL;
}

int link_report_list_put(struct link_report_list *reports, const struct link_report *report)
{
        struct link_report *place = link_report_list_find(reports, report->vendor, report->pci);

        if (place == NULL && reports->count < DEVICES_MAX)
                place = array_add(&reports->reports, &reports->count, NULL, sizeof(*place));
        if (place == NULL)
                return -ENOMEM;
        *place = *report;
        return 0;
}

bool link_report_same(const struct link_report *a, const struct link_report *b)
{
        if (strcmp(a->vendor, b->vendor) != 0 || strcmp(a->pci, b->pci) != 0 ||
            a->link_count != b->link_count || a->switched != b->switched)
                return false;
        for (size_t i = 0; i < a->link_count; i++)
                if (strcmp(a->links[i].peer, b->links[i].peer) != 0 || a->links[i].width != b->links[i].width)
                        return false;
        return true;
}

bool link_report_add(struct link_report *report, const char *peer, unsigned width)
{
        size_t i = 0;

        while (i < report->link_count && strcmp(report->links[i].peer, peer) != 0)
                i++;
        if (i == DEVICE_LINKS_MAX)
                return false;
        if (i == report->link_count) {
                report->links[report->link_count++] = (struct device_link){ .width = 0 };
                (void) text_copy(report->links[i].peer, sizeof(report->links[i].peer), peer);
        }
        report->links[i].width += width;
        return true;
}
