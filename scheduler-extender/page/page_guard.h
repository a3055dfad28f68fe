/* Page guard: may this request be answered, or does a web page of somebody else's ask, by the browser of
 * whoever has ours open?
 *
 * A browser tells of every request where it goes to (Host) and, of those of other pages, from where (Origin,
 * Sec-Fetch-Site). On a loopback address any page may make a browser ask; one that has its own name point to
 * 127.0.0.1 (DNS rebinding) may read the answer, too: so the Host has to be a name of the loopback address
 * itself. Who shows a client certificate calls the server by whatever name its certificate has. Programs that
 * are no browsers send neither Origin nor Sec-Fetch-Site, and are not refused for that. Pure. */
#pragma once

#include <stdbool.h>

/* Headers as they came; NULL = not sent. */
struct page_guard_request {
        const char *host, *origin, *fetch_site, *fetch_mode;
        bool certified; /* with a certificate of the server's client CA */
};

/* page_guard_refuses() - a sentence for a 403; NULL = it may be answered. */
const char *page_guard_refuses(const struct page_guard_request *request);

/* page_guard_is_loopback() - is "127.0.0.1:8080", "localhost", "[::1]:1" ... a name of this machine alone? */
bool page_guard_is_loopback(const char *host);
