# install.mk: manual pages, completions, and installation.

PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
MANDIR ?= $(PREFIX)/share/man
COMPLETIONDIR ?= $(PREFIX)/share/bash-completion/completions
ZSHDIR ?= $(PREFIX)/share/zsh/site-functions
FISHDIR ?= $(PREFIX)/share/fish/vendor_completions.d
UNITDIR ?= $(PREFIX)/lib/systemd/system

##@ Installing

# The manual page and the completions are made from the settings' own table, as --help prints it (EMULATOR runs a foreign
# program).
DOCUMENTS := $(addprefix $(BUILD)/,attnd.1 libattn.3 attnd.bash attnd.zsh attnd.fish)
.PHONY: documents
documents: $(DOCUMENTS)

$(BUILD)/help.txt: $(BUILD)/attnd
	$(Q)$(EMULATOR) $(BUILD)/attnd --help > $@
$(BUILD)/settings.%: $(BUILD)/help.txt packaging/settings.awk
	$(Q)awk -v FORM=$* -f packaging/settings.awk $< > $@
$(BUILD)/attnd.1: packaging/attnd.1.in $(BUILD)/settings.man VERSION
	$(Q)sed -e 's|@VERSION@|$(VERSION)|' -e '/^@SETTINGS@$$/{r $(BUILD)/settings.man' -e 'd;}' $< > $@
$(BUILD)/libattn.3: packaging/libattn.3.in VERSION
	$(Q)mkdir -p $(@D)
	$(Q)sed -e 's|@VERSION@|$(VERSION)|' $< > $@
$(BUILD)/attnd.bash: packaging/attnd.bash.in $(BUILD)/settings.words $(BUILD)/settings.values
	$(Q)sed -e "s|@SETTINGS@|$$(cat $(BUILD)/settings.words)|" -e '/^@VALUES@$$/{r $(BUILD)/settings.values' -e 'd;}' $< > $@
$(BUILD)/attnd.zsh $(BUILD)/attnd.fish: $(BUILD)/attnd.%: packaging/attnd.%.in $(BUILD)/settings.%
	$(Q)sed -e '/^@SETTINGS@$$/{r $(BUILD)/settings.$*' -e 'd;}' $< > $@

# Programs find a library in a system folder only after ldconfig has run.
refresh_loader = case '$(DESTDIR),$(LIBDIR)' in ,/usr/*) [ "$$(id -u)" != 0 ] || ldconfig ;; esac

install: all documents ## install server, library, headers, attn.pc, manual pages, completions, systemd unit (PREFIX, LIBDIR, DESTDIR)
	$(Q)install -d "$(DESTDIR)$(PREFIX)/bin" "$(DESTDIR)$(LIBDIR)/pkgconfig" "$(DESTDIR)$(PREFIX)/include/attn" \
	    "$(DESTDIR)$(MANDIR)/man1" "$(DESTDIR)$(MANDIR)/man3" "$(DESTDIR)$(COMPLETIONDIR)" \
	    "$(DESTDIR)$(ZSHDIR)" "$(DESTDIR)$(FISHDIR)" "$(DESTDIR)$(UNITDIR)"
	$(Q)install -m 755 $(BUILD)/attnd "$(DESTDIR)$(PREFIX)/bin/attnd"
	$(Q)install -m 644 $(PUBLIC_HEADERS) "$(DESTDIR)$(PREFIX)/include/attn/"
	$(Q)install -m 644 $(BUILD)/libattn.a "$(DESTDIR)$(LIBDIR)/libattn.a"
	$(Q)install -m 755 $(SHARED) "$(DESTDIR)$(LIBDIR)/libattn.so.$(VERSION)"
	$(Q)ln -sf libattn.so.$(VERSION) "$(DESTDIR)$(LIBDIR)/libattn.so.$(SOVERSION)"
	$(Q)ln -sf libattn.so.$(SOVERSION) "$(DESTDIR)$(LIBDIR)/libattn.so"
	$(Q)up=$$(realpath -m --relative-to="$(LIBDIR)/pkgconfig" "$(PREFIX)") && \
	    lib=$$(realpath -m --relative-to="$(PREFIX)" "$(LIBDIR)") && \
	    sed -e "s|@PREFIX@|\$${pcfiledir}/$$up|" -e "s|@LIBDIR@|\$${prefix}/$$lib|" -e 's|@VERSION@|$(VERSION)|' \
	    -e 's|@LIBS_PRIVATE@|$(strip $(LIBS_CORE))|' \
	    core/attn.pc.in > "$(DESTDIR)$(LIBDIR)/pkgconfig/attn.pc"
	$(Q)install -m 644 $(BUILD)/attnd.1 "$(DESTDIR)$(MANDIR)/man1/attnd.1"
	$(Q)install -m 644 $(BUILD)/libattn.3 "$(DESTDIR)$(MANDIR)/man3/libattn.3"
	$(Q)install -m 644 $(BUILD)/attnd.bash "$(DESTDIR)$(COMPLETIONDIR)/attnd"
	$(Q)install -m 644 $(BUILD)/attnd.zsh "$(DESTDIR)$(ZSHDIR)/_attnd"
	$(Q)install -m 644 $(BUILD)/attnd.fish "$(DESTDIR)$(FISHDIR)/attnd.fish"
	$(Q)sed -e "s|@BINDIR@|$$(echo '$(PREFIX)/bin' | sed 's/ /\\\\x20/g')|" packaging/attnd.service.in \
	    > "$(DESTDIR)$(UNITDIR)/attnd.service"
	$(Q)install -m 644 packaging/attnd.socket "$(DESTDIR)$(UNITDIR)/attnd.socket"
	$(Q)$(call refresh_loader)

uninstall: ## remove what `make install` with the same PREFIX, LIBDIR and DESTDIR has written
	$(Q)rm -f "$(DESTDIR)$(PREFIX)/bin/attnd" "$(DESTDIR)$(LIBDIR)"/libattn.a "$(DESTDIR)$(LIBDIR)"/libattn.so* \
	    "$(DESTDIR)$(LIBDIR)/pkgconfig/attn.pc" $(patsubst %,"$(DESTDIR)$(PREFIX)/include/attn/%",$(notdir $(PUBLIC_HEADERS))) \
	    "$(DESTDIR)$(MANDIR)/man1/attnd.1" "$(DESTDIR)$(MANDIR)/man3/libattn.3" "$(DESTDIR)$(COMPLETIONDIR)/attnd" \
	    "$(DESTDIR)$(ZSHDIR)/_attnd" "$(DESTDIR)$(FISHDIR)/attnd.fish" "$(DESTDIR)$(UNITDIR)/attnd.service" \
	    "$(DESTDIR)$(UNITDIR)/attnd.socket"
	$(Q)[ ! -d "$(DESTDIR)$(PREFIX)/include/attn" ] || rmdir --ignore-fail-on-non-empty "$(DESTDIR)$(PREFIX)/include/attn"
	$(Q)$(call refresh_loader)
