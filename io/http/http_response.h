/* HTTP response: a reply as the library sends it: its bytes, which are handed over and not copied, and its
 * headers. */
#pragma once

#include <microhttpd.h>

#include "io/http/http_reply.h"

#define HTTP_RESPONSE_PIECE_BYTES 16384 /* of a stream, that the library asks for at a time */

/* http_response_new() - what the reply has is the response's from now on, also where that is NULL for want of
 * memory. @headers: as a route has them, or NULL; @allow: methods, or NULL. */
struct MHD_Response *http_response_new(struct http_reply *reply, const char *const *headers,
                                       const char *allow);
