/* Any bytes as a file of link reports: what is taken is in its bounds, and comes back as it was. */
#include <stdint.h>
#include <string.h>

#include "agent/inventory/link_report_line.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct link_report *report)
{
        struct link_report again;
        struct text line = { 0 };

        if (report->link_count > DEVICE_LINKS_MAX || strlen(report->pci) < strlen("0000:06:00.0"))
                __builtin_trap();
        for (size_t i = 0; i < report->link_count; i++)
                if (report->links[i].width < 1 || report->links[i].width > LINK_REPORT_WIDTH_MAX ||
                    strcmp(report->links[i].peer, report->pci) == 0)
                        __builtin_trap();
        link_report_line_encode(report, &line);
        if (line.failed ||
            link_report_line_decode(report->vendor, line.data, line.size_bytes, &again, NULL) < 0 ||
            !link_report_same(report, &again))
                __builtin_trap();
        text_free(&line);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct link_report_list reports = { 0 };

        if (link_report_line_decode_all("nvidia", (const char *) data, size, &reports, NULL) < 0 &&
            reports.count > 0)
                __builtin_trap();
        for (size_t i = 0; i < reports.count; i++)
                check(&reports.reports[i]);
        link_report_list_free(&reports);
        return 0;
}
