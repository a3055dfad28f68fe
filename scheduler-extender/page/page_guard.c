/* Host, Origin and Sec-Fetch-Site against each other. */
#include "scheduler-extender/page/page_guard.h"

#include <string.h>
#include <strings.h>

static bool is_port(const char *text)
{
        size_t digits;

        if (text[0] == '\0')
                return true;
        digits = text[0] == ':' ? strspn(text + 1, "0123456789") : 0;
        return digits > 0 && digits <= 5 && text[1 + digits] == '\0';
}

/* 127.0.0.0/8 is the machine's own in the form with four numbers alone: shorter ones are names to some. */
static size_t loopback_ipv4_length(const char *host)
{
        const char *at = host;

        for (int part = 0; part < 4; part++) {
                size_t digits = strspn(at, "0123456789");

                if (digits == 0 || digits > 3 || (part == 0 && strncmp(at, "127.", 4) != 0))
                        return 0;
                at += digits;
                if (part < 3 && *at++ != '.')
                        return 0;
        }
        return (size_t) (at - host);
}

bool page_guard_is_loopback(const char *host)
{
        size_t length = loopback_ipv4_length(host);

        if (length == 0 && strncasecmp(host, "localhost", 9) == 0)
                length = 9;
        if (length == 0 && strncmp(host, "[::1]", 5) == 0)
                length = 5;
        return length > 0 && is_port(host + length);
}

/* An origin is "SCHEME://HOST": ours has the host to which the request goes. */
static bool is_own(const char *origin, const char *host)
{
        const char *end = strstr(origin, "://");

        if (end == NULL || host == NULL)
                return false;
        return (strncmp(origin, "http", 4) == 0) && strcasecmp(end + 3, host) == 0;
}

static bool is_foreign_site(const struct page_guard_request *r)
{
        if (r->fetch_site == NULL || strcmp(r->fetch_site, "same-origin") == 0 ||
            strcmp(r->fetch_site, "none") == 0)
                return false;
        /* another port of this machine may lead here by a link, and no more */
        return strcmp(r->fetch_site, "same-site") != 0 || r->fetch_mode == NULL ||
               strcmp(r->fetch_mode, "navigate") != 0;
}

const char *page_guard_refuses(const struct page_guard_request *r)
{
        if (!r->certified && r->host != NULL && !page_guard_is_loopback(r->host))
                return "the Host is not this machine's own: open the page at 127.0.0.1, [::1] or localhost";
        if (r->origin != NULL && !is_own(r->origin, r->host))
                return "the request comes from another page (Origin)";
        if (is_foreign_site(r))
                return "the request comes from another site (Sec-Fetch-Site)";
        return NULL;
}
