/* TLS certificate: what one is made for (GnuTLS). */
#pragma once

#include <gnutls/x509.h>
#include <stdbool.h>

/* tls_certificate_is_for() - does it say, by its extended key usage, that it is for a server, or for a
 * client? One that says nothing is for neither. */
bool tls_certificate_is_for(gnutls_x509_crt_t certificate, bool server);
