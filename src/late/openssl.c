/* OpenSSL, and libevent's way of speaking through it: TLS and digests; see base/late.h. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include <event2/bufferevent_ssl.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/sha.h>
#include <openssl/ssl.h>

#include "base/late.h"

static struct late_library ssl = {.name = LATE_SSL};
static struct late_library crypto = {.name = LATE_CRYPTO};
static struct late_library event_openssl = {.name = LATE_EVENT_OPENSSL};

LATE(ssl, const SSL_METHOD *, TLS_client_method, (void), ())
LATE(ssl, const SSL_METHOD *, TLS_server_method, (void), ())
LATE(ssl, SSL_CTX *, SSL_CTX_new, (const SSL_METHOD *method), (method))
LATE(ssl, void, SSL_CTX_free, (SSL_CTX * context), (context))
LATE(ssl, long, SSL_CTX_ctrl, (SSL_CTX * context, int command, long number, void *pointer),
     (context, command, number, pointer))
LATE(ssl, uint64_t, SSL_CTX_set_options, (SSL_CTX * context, uint64_t chosen), (context, chosen))
LATE(ssl, void, SSL_CTX_set_verify, (SSL_CTX * context, int mode, SSL_verify_cb callback),
     (context, mode, callback))
LATE(ssl, int, SSL_CTX_set_default_verify_paths, (SSL_CTX * context), (context))
LATE(ssl, int, SSL_CTX_load_verify_locations,
     (SSL_CTX * context, const char *file, const char *folder), (context, file, folder))
LATE(ssl, int, SSL_CTX_use_certificate_chain_file, (SSL_CTX * context, const char *file),
     (context, file))
LATE(ssl, int, SSL_CTX_use_PrivateKey_file, (SSL_CTX * context, const char *file, int type),
     (context, file, type))
LATE(ssl, int, SSL_CTX_check_private_key, (const SSL_CTX *context), (context))
LATE(ssl, SSL *, SSL_new, (SSL_CTX * context), (context))
LATE(ssl, void, SSL_free, (SSL * s), (s))
LATE(ssl, long, SSL_ctrl, (SSL * s, int command, long number, void *pointer),
     (s, command, number, pointer))
LATE(ssl, int, SSL_set1_host, (SSL * s, const char *host), (s, host))
LATE(ssl, int, SSL_set_fd, (SSL * s, int fd), (s, fd))
LATE(ssl, int, SSL_connect, (SSL * s), (s))
LATE(ssl, int, SSL_read, (SSL * s, void *buffer, int size), (s, buffer, size))
LATE(ssl, int, SSL_write, (SSL * s, const void *buffer, int size), (s, buffer, size))
LATE(ssl, int, SSL_get_error, (const SSL *s, int result), (s, result))

LATE(crypto, int, CRYPTO_memcmp, (const void *a, const void *b, size_t size), (a, b, size))
LATE(crypto, unsigned long, ERR_get_error, (void), ())
LATE(crypto, void, ERR_error_string_n, (unsigned long code, char *text, size_t size),
     (code, text, size))
LATE(crypto, unsigned char *, SHA1, (const unsigned char *data, size_t size, unsigned char *out),
     (data, size, out))
LATE(crypto, unsigned char *, SHA256, (const unsigned char *data, size_t size, unsigned char *out),
     (data, size, out))
LATE(crypto, const EVP_MD *, EVP_sha256, (void), ())
LATE(crypto, EVP_MD_CTX *, EVP_MD_CTX_new, (void), ())
LATE(crypto, void, EVP_MD_CTX_free, (EVP_MD_CTX * context), (context))
LATE(crypto, int, EVP_DigestInit_ex, (EVP_MD_CTX * context, const EVP_MD *kind, ENGINE *engine),
     (context, kind, engine))
LATE(crypto, int, EVP_DigestUpdate, (EVP_MD_CTX * context, const void *data, size_t size),
     (context, data, size))
LATE(crypto, int, EVP_DigestFinal_ex, (EVP_MD_CTX * context, unsigned char *out, unsigned *size),
     (context, out, size))
LATE(crypto, int, EVP_Digest,
     (const void *data, size_t size, unsigned char *out, unsigned *length, const EVP_MD *kind,
      ENGINE *engine),
     (data, size, out, length, kind, engine))

LATE(event_openssl, struct bufferevent *, bufferevent_openssl_socket_new,
     (struct event_base * base, evutil_socket_t fd, SSL *s, enum bufferevent_ssl_state state,
      int chosen),
     (base, fd, s, state, chosen))
