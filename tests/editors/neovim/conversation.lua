-- A whole conversation by Neovim, with the settings that docs/editors.md shows. Prints one JSON object a step.
-- usage: nvim --clean --headless -l conversation.lua SETTINGS FILE, with the input that stalls in $STALLS.
local settings, file = arg[1], arg[2]
local stalls = vim.env.STALLS
local messages, progress, events, unhandled, exit_code = {}, {}, {}, {}, nil

local function say(step, value)
  io.stdout:write(vim.json.encode({ step = step, value = value }), "\n")
end

local function wait(what, condition)
  if not vim.wait(20000, condition, 5) then
    io.stderr:write("waited in vain for ", what, "\n")
    io.stdout:flush()
    os.exit(1)
  end
end

-- What Neovim does with each is left as it is; this only watches.
local function watch(method, list)
  local original = vim.lsp.handlers[method]
  vim.lsp.handlers[method] = function(err, params, context, ...)
    table.insert(list, params)
    if original then
      return original(err, params, context, ...)
    end
  end
end
watch("window/showMessage", messages)
watch("$/progress", progress)
watch("run/event", events)
vim.api.nvim_echo = function() end -- messages of the server would stand between the lines of JSON

vim.cmd("filetype on")
vim.lsp.config("agent-sidecar", {
  on_exit = function(code)
    exit_code = code
  end,
})
dofile(settings)
vim.cmd.edit(vim.fn.fnameescape(file))
wait("the client", function()
  local client = vim.lsp.get_clients({ name = "agent-sidecar" })[1]
  return client and client.initialized and vim.lsp.buf_is_attached(0, client.id)
end)
local client = vim.lsp.get_clients({ name = "agent-sidecar" })[1]
say("attached", { root = client.root_dir, encoding = client.offset_encoding, uri = vim.uri_from_bufnr(0) })

local function request(method, params)
  local reply
  local _, id = client:request(method, params, function(err, result)
    reply = { error = err, result = result }
  end)
  return id, function()
    wait("the answer to " .. method, function()
      return reply
    end)
    return reply.result, reply.error
  end
end

local function execute(command, ...)
  local _, answer = request("workspace/executeCommand", { command = command, arguments = { ... } })
  return answer
end

local function shown(text)
  return function()
    for _, report in ipairs(progress) do
      if (report.value.message or ""):find(text, 1, true) then
        return report
      end
    end
  end
end

-- Unsaved text.
vim.api.nvim_buf_set_lines(0, 0, -1, false, { "unsaved", "text 😋" })
vim.api.nvim_buf_set_text(0, 1, 5, 1, 9, { "more" })
say("documents", execute("sidecar.showState")().documents)

-- The user's own commands.
vim.cmd("Sidecar hello there")
wait("the message", function()
  return #messages >= 2
end)
say("message", messages[2])

-- A run that never ends, until its user cancels the progress that Neovim was asked to create.
progress = {}
watch("$/progress", progress)
local answer = execute("sidecar.run", stalls)
wait("the beginning", shown("Once upon a time"))
local token = progress[1].token
client:notify("window/workDoneProgress/cancel", { token = token })
say("cancelled", { status = answer().status, first = progress[1].value, last = progress[#progress].value })
say("silent", #events == 0)

-- The sidecar's own methods, by the same client.
local created = select(2, request("createSession", { sessionId = "nvim" }))()
say("createSession", { sessionId = created.session.sessionId, cwd = created.session.cwd })
say("run", select(2, request("run", { sessionId = "nvim", input = "hello" }))().text)
say("events", { first = events[1].type, last = events[#events].type })
say("getState", vim.tbl_keys(select(2, request("getState"))())) -- no params at all

-- Neovim throws away what is answered with "request cancelled"; a run is answered with its result.
local id, story = request("run", { sessionId = "nvim", input = stalls })
wait("the run", function()
  return events[#events].type == "message.delta"
end)
client:cancel_request(id)
say("cancelRequest", story().status)

client:stop()
wait("the end", function()
  return exit_code
end)
say("exit", exit_code)
