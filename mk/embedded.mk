# embedded.mk: files that are embedded in the server. Pages are bundled and compressed; objects depend on them.

PAGE := $(BUILD)/server/web
DOCS := $(BUILD)/server/docs
CPPFLAGS_server/http/pages.c := -DPAGE_FOLDER=\"$(PAGE)\" -DDOCS_FOLDER=\"$(DOCS)\" -DOPENAPI=\"$(BUILD)/server/openapi.json\" \
	-I$(PAGE)

$(call obj,server/http/pages.c): $(addprefix $(BUILD)/server/,openapi.json.tag openapi.json.gz.tag web/page.html.gz web/files.inc docs/page.html.gz)
$(call obj,server/codec/checkpoint/language/architecture.c): $(shell find server -name architectures.json 2>/dev/null)
$(call obj,server/codec/gguf/model.c): $(shell find server -name kinds.json 2>/dev/null)
$(call obj,server/codec/tokenizer/slow/convert.c): $(shell find server -name classes.json 2>/dev/null)
$(call obj,server/service/registry/model/files.c): $(wildcard examples/train_demo/model/* examples/train_small/model/*)

# The OpenAPI document: a text that people write, filled in by a program that runs the decoders of requests. RUN is what
# runs a program that was built for another machine. To run the decoders here is no test of them.
UNCOUNTED_in_coverage := GCOV_PREFIX=$(BUILD)/uncounted
OPENAPI_SRC := $(wildcard mk/openapi/*.c)
SOURCES += $(OPENAPI_SRC)
# In the places of these functions, the program has its own (mk/openapi/forms.c).
OPENAPI_WRAPPED := $(addprefix node_,string check_members $(addprefix decode_,members list bool number positive integer seed word)) \
	$(addprefix decode_,tensor rows past scores bias reals flags flags_or_one counts counts_or_one lengths ids weight) short_form_spell
OPENAPI_OBJ := $(call obj,$(OPENAPI_SRC)) $(filter $(addprefix $(BUILD)/server/,base/% codec/% config/%),$(SERVER_OBJ))

$(BUILD)/openapi: $(OPENAPI_OBJ) $(BUILD)/libattn.a
	$(Q)$(call step,linking $@)$(LINK) $(addprefix -Wl$(comma)--wrap=,$(OPENAPI_WRAPPED)) $(LDFLAGS) $^ $(LIBS_SERVER) $(LIBS_CORE) $(LDLIBS) -o $@

# In the order of the document: the paths of the server's own interface come first. Gradients are the last schemas, because
# programs that generate clients declare a list of words (steps) where it stands, and use it in a longer list.
openapi_parts := $(foreach folder,paths/v1 paths/v2 paths schemas components,$(sort $(wildcard server/openapi/$(folder)/*.json)))
openapi_last := server/openapi/schemas/gradients.json
OPENAPI_TEXT := server/openapi/document.json $(filter-out $(openapi_last),$(openapi_parts)) $(openapi_last)
$(BUILD)/server/openapi.json: $(OPENAPI_TEXT) $(BUILD)/openapi VERSION
	$(Q)mkdir -p $(@D)
	$(Q)$(UNCOUNTED_in_$(MODE)) $(RUN) $(BUILD)/openapi $(OPENAPI_TEXT) > $@

$(BUILD)/server/openapi.json.gz: $(BUILD)/server/openapi.json
	$(Q)mkdir -p $(@D)
	$(Q)gzip -9nc $< > $@

$(BUILD)/server/openapi.json.tag $(BUILD)/server/openapi.json.gz.tag: %.tag: %
	$(Q)printf '"%s"' "$$(sha256sum $< | cut -c 1-32)" > $@

sources_of_page = $(shell find server/$(1) -name '*.js' -o -name '*.css' -o -name '*.html' -o -path '*/texts/en.json' 2>/dev/null) mk/bundle_page.sh mk/bundle_modules.sh
$(PAGE)/page.html.gz: $(call sources_of_page,web)
	$(Q)mk/bundle_page.sh server/web $(PAGE)

$(PAGE)/files.inc: $(wildcard server/web/*/*.json) $(PAGE)/page.html.gz server/web/modules/attention.d.ts clients/js/index.js clients/js/index.d.ts \
    mk/pack_files.sh mk/bundle_library.sh
	$(Q)mkdir -p $(@D)
	$(Q)mk/pack_files.sh server/web clients/js $(PAGE)

$(DOCS)/page.html.gz: $(call sources_of_page,docs) server/web/element.js
	$(Q)mk/bundle_page.sh server/docs $(DOCS)
