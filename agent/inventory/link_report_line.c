/* A line of links is checked as it is read: addresses, widths, and how many there may be. */
#include "agent/inventory/link_report_line.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/json/json_field.h"
#include "base/json/json_line.h"

void link_report_line_encode(const struct link_report *report, struct text *out)
{
        json_t *links = json_array();

        for (size_t i = 0; i < report->link_count; i++)
                (void) json_array_append_new(links, json_pack("{s:s, s:i}", "peer", report->links[i].peer,
                                                              "width", (int) report->links[i].width));
        json_line_append(out, json_pack("{s:s, s:o, s:i}", "pci", report->pci, "links", links, "switched",
                                        (int) report->switched));
}

/* "0000:06:00.0": hexadecimal digits where they belong, made lower case; a domain of more than four digits
 * ("00000000:06:00.0") loses the zeros in front. */
static bool tidy_address(char *pci)
{
        static const char form[] = "xxxx:xx:xx.x";
        size_t length = strlen(pci), more = length > strlen(form) ? length - strlen(form) : 0;

        if (length < strlen(form) || more > 4) /* domains of up to eight digits */
                return false;
        for (size_t i = 0; i < length; i++) {
                bool digit = i < more || form[i - more] == 'x';

                if (digit ? !isxdigit((unsigned char) pci[i]) : pci[i] != form[i - more])
                        return false;
                pci[i] = (char) tolower((unsigned char) pci[i]);
        }
        for (; more > 0 && pci[0] == '0'; more--)
                memmove(pci, pci + 1, strlen(pci));
        return true;
}

static int read_address(const struct json_field *in, const char *name, char *ret, size_t ret_bytes,
                        struct err *err)
{
        int r = json_field_require(in, name, err);

        if (r == 0)
                r = json_field_text(in, name, ret, ret_bytes, err);
        if (r == 0 && !tidy_address(ret))
                r = json_field_error(in, err, "'%s' must be a PCI address such as 0000:06:00.0", name);
        return r;
}

static int read_link(const struct json_field *link, struct link_report *ret, struct err *err)
{
        char peer[sizeof(ret->links[0].peer)];
        unsigned width = 1;
        int r = json_field_is_object(link, err);

        if (r == 0)
                r = read_address(link, "peer", peer, sizeof(peer), err);
        if (r == 0)
                r = json_field_unsigned(link, "width", 1, LINK_REPORT_WIDTH_MAX, &width, err);
        if (r >= 0 && strcmp(peer, ret->pci) != 0 && !link_report_add(ret, peer, width))
                r = json_field_error(link, err, "more than %d peers", DEVICE_LINKS_MAX);
        return r < 0 ? r : 0;
}

static int read_report(const json_t *object, struct link_report *ret, struct err *err)
{
        struct json_field root = json_field_root(object), links;
        int r = json_field_is_object(&root, err);

        if (r == 0)
                r = read_address(&root, "pci", ret->pci, sizeof(ret->pci), err);
        if (r == 0)
                r = json_field_unsigned(&root, "switched", 0, LINK_REPORT_WIDTH_MAX, &ret->switched, err);
        if (r >= 0)
                r = json_field_array(&root, "links", LINK_REPORT_WIDTH_MAX, &links, err);
        for (size_t i = 0; r >= 0 && i < json_field_count(&links); i++) {
                struct json_field link = json_field_at(&links, i);

                r = read_link(&link, ret, err);
        }
        for (size_t i = 0; i < ret->link_count; i++) /* the same peer may come again and again */
                if (ret->links[i].width > LINK_REPORT_WIDTH_MAX)
                        ret->links[i].width = LINK_REPORT_WIDTH_MAX;
        return r < 0 ? r : 0;
}

int link_report_line_decode(const char *vendor, const char *line, size_t size_bytes, struct link_report *ret,
                            struct err *err)
{
        json_t *object = json_line_load(line, size_bytes, LINK_REPORT_LINE_BYTES, err);
        int r;

        *ret = (struct link_report){ .link_count = 0 };
        if (object == NULL)
                return -EBADMSG;
        (void) text_copy(ret->vendor, sizeof(ret->vendor), vendor);
        r = read_report(object, ret, err);
        json_decref(object);
        return r;
}

static int put_copy(const struct link_report_list *from, struct link_report_list *to)
{
        int r = 0;

        for (size_t i = 0; r == 0 && i < from->count; i++)
                r = link_report_list_put(to, &from->reports[i]);
        return r;
}

int link_report_line_decode_all(const char *vendor, const char *bytes, size_t size_bytes,
                                struct link_report_list *ret, struct err *err)
{
        struct link_report_list read = { 0 };
        const char *end = bytes + size_bytes, *line = bytes, *next;
        unsigned number = 0;
        int r = put_copy(ret, &read);

        for (; r == 0 && line < end; line = next + 1) {
                struct link_report report;

                next = memchr(line, '\n', (size_t) (end - line));
                next = next != NULL ? next : end;
                number++;
                if (next == line || *line == '#')
                        continue;
                r = link_report_line_decode(vendor, line, (size_t) (next - line), &report, err);
                if (r < 0)
                        r = err_wrap(err, r, "line %u", number);
                else
                        r = link_report_list_put(&read, &report);
        }
        if (r < 0) {
                link_report_list_free(&read);
                return r;
        }
        link_report_list_free(ret);
        *ret = read;
        return 0;
}
