-- Code actions by Neovim's own menu, with nothing but the command that starts the server. Prints one JSON object a step.
-- usage: nvim --clean --headless -l code_actions.lua FILE
local file = arg[1]
local asked, messages, shown, choice = {}, {}, {}, {}

local bench = dofile(vim.fs.joinpath(vim.fs.dirname(arg[0]), "bench.lua"))
local say, wait, watch = bench.say, bench.wait, bench.watch

watch("window/showMessage", messages)
watch("window/showDocument", shown)
vim.api.nvim_echo = function() end -- messages of the server would stand between the lines of JSON

vim.ui.select = function(items, options, choose)
  local titles = vim.tbl_map(options.format_item or tostring, items)
  table.insert(asked, { prompt = options.prompt, titles = titles })
  for index, title in ipairs(titles) do
    if vim.startswith(title, choice[1]) then
      table.remove(choice, 1)
      return choose(items[index], index)
    end
  end
  choose(nil)
end

vim.lsp.config("agent-sidecar", { cmd = { "agent-sidecar", "serve" }, root_markers = { ".git" } })
vim.lsp.enable("agent-sidecar")
vim.cmd("filetype on")
vim.cmd.edit(vim.fn.fnameescape(file))
local client
wait("the client", function()
  client = vim.lsp.get_clients({ name = "agent-sidecar" })[1]
  return client and client.initialized and vim.lsp.buf_is_attached(0, client.id)
end)
vim.api.nvim_buf_set_lines(0, 0, -1, false, { "é😋 unsaved", "text = wrnog", "end" })
vim.o.undolevels = vim.o.undolevels -- what comes from here on is undone by itself

local function act(line, ...)
  choice = { ... }
  local before = #messages
  vim.api.nvim_win_set_cursor(0, { line, 0 })
  vim.lsp.buf.code_action()
  wait("the answer", function()
    return #messages > before
  end)
  return messages[#messages].message
end

say("explained", act(1, "Explain with agent"))
say("rejected", act(2, "Fix with agent", "Reject"))
say("unchanged", vim.api.nvim_buf_get_lines(0, 0, -1, false))
say("fixed", act(2, "Fix with agent", "Allow once"))
say("changed", vim.api.nvim_buf_get_lines(0, 0, -1, false))
say("asked", asked)
wait("the place", function()
  return #shown > 0
end)
say("shown", shown[1].selection)

vim.cmd.undo()
say("undone", vim.api.nvim_buf_get_lines(0, 0, -1, false))
client:stop()
wait("the end", function()
  return #vim.lsp.get_clients() == 0
end)
